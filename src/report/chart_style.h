// Colours and marks that several charts share. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Whose mark it is: its colour and its shape, a circle, a square, a triangle or a diamond.
enum class ChartSide { kFirst, kSecond, kThird, kBaseline };

// CSS for the classes that charts use, by variables; and the variables, light and dark.
std::string_view ChartClasses();
std::string_view ChartVariables();

// A mark at a place, in pixels.
std::string ChartMark(ChartSide side, double x, double y);
std::string ChartText(double x, double y, std::string_view anchor, int size, std::string_view kind,
                      std::string_view text);
std::string ChartLine(std::string_view path, std::string_view kind);
// The opening of a picture with its name and description; `alone`: with its own style.
std::string ChartOpening(int width, int height, std::string_view id, std::string_view title,
                         std::string_view description, bool alone);

}  // namespace assay
